import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("groups", "0001_initial"), ("jobs", "0005_algorithms")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="group",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="jobs",
                to="groups.group",
            ),
        ),
    ]
