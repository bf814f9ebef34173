from django.db import migrations, models

_HELP = "empty: the platform's default; -1: no limit"


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_initial")]

    operations = [
        migrations.AddField(
            model_name="quota",
            name=name,
            field=models.BigIntegerField(blank=True, help_text=_HELP, null=True),
        )
        for name in ("storage_bytes", "storage_files")
    ]
