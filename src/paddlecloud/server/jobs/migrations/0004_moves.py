from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0003_publication")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="moves",
            field=models.TextField(default="[]"),
        )
    ]
