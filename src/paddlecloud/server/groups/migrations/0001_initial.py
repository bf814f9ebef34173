import time

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="Group",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=150, unique=True)),
                ("created_at", models.FloatField(default=time.time, editable=False)),
                ("weight", models.IntegerField(default=1)),
                ("clusters", models.TextField(blank=True, default="")),
                ("guarantee_cpu_milli", models.BigIntegerField(blank=True, null=True)),
                ("guarantee_memory_bytes", models.BigIntegerField(blank=True, null=True)),
                ("guarantee_gpu", models.IntegerField(blank=True, null=True)),
                ("guarantee_replicas", models.IntegerField(blank=True, null=True)),
                ("limit_cpu_milli", models.BigIntegerField(blank=True, null=True)),
                ("limit_memory_bytes", models.BigIntegerField(blank=True, null=True)),
                ("limit_gpu", models.IntegerField(blank=True, null=True)),
                ("limit_replicas", models.IntegerField(blank=True, null=True)),
                (
                    "own_account",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="own_group",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[("owner", "owner"), ("member", "member"), ("viewer", "viewer")],
                        max_length=8,
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="groups.group",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("group", "account"), name="one_membership")
                ],
            },
        ),
    ]
