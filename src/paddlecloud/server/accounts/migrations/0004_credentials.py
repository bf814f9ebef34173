import time

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_storage_limits")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="last_used_at",
            field=models.FloatField(null=True),
        ),
        migrations.CreateModel(
            name="ClientCertificate",
            fields=[
                ("serial", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("created_at", models.FloatField(default=time.time)),
                ("expires_at", models.FloatField()),
                ("revoked_at", models.FloatField(null=True)),
                ("reason", models.TextField(blank=True, default="")),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="certificates",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    ]
