import time

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_credentials")]

    operations = [
        migrations.CreateModel(
            name="SeenNonce",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("good_until", models.FloatField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="AccessKey",
            fields=[
                ("ak", models.CharField(max_length=128, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=64)),
                ("scope", models.CharField(default="all", max_length=8)),
                ("sealed", models.TextField()),
                ("previous", models.TextField(default="")),
                ("previous_until", models.FloatField(default=0.0)),
                ("created_at", models.FloatField(default=time.time)),
                ("rotated_at", models.FloatField(null=True)),
                ("last_used_at", models.FloatField(null=True)),
                ("revoked_at", models.FloatField(null=True)),
                ("reason", models.TextField(blank=True, default="")),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="access_keys",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["account", "-created_at"], name="access_key_list")
                ],
            },
        ),
    ]
