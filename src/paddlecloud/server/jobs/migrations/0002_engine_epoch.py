from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="enginecursor",
            name="epoch",
            field=models.CharField(default="", max_length=64),
        )
    ]
