import time

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_access_keys")]

    operations = [
        migrations.CreateModel(
            name="Registry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=63)),
                ("server", models.CharField(max_length=255)),
                ("username", models.CharField(max_length=255)),
                ("sealed", models.TextField()),
                ("created_at", models.FloatField(default=time.time)),
                ("changed_at", models.FloatField(default=time.time)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="registries",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "registries",
                "constraints": [
                    models.UniqueConstraint(fields=("account", "name"), name="one_registry")
                ],
            },
        ),
    ]
