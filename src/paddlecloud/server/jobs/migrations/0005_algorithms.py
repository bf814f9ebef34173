from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0004_moves"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="algorithm",
            field=models.CharField(default="", max_length=32),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("algorithm", ""), _negated=True),
                fields=["algorithm", "-submitted_at"],
                name="job_algorithm",
            ),
        ),
        migrations.CreateModel(
            name="Algorithm",
            fields=[
                ("id", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=128)),
                ("group", models.CharField(default="", max_length=150)),
                ("remark", models.TextField(default="")),
                ("created_at", models.FloatField()),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=models.deletion.CASCADE,
                        related_name="algorithms",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["group"], name="algorithm_group")],
                "constraints": [
                    models.UniqueConstraint(fields=("account", "name"), name="one_algorithm")
                ],
            },
        ),
    ]
