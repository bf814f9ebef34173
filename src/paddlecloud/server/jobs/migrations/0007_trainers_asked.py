from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0006_jobs_in_own_groups")]

    operations = [
        migrations.AddField(
            model_name="job", name="trainers_asked", field=models.IntegerField(null=True)
        )
    ]
