from django.db import migrations


class Migration(migrations.Migration):
    """Places in the queue are no longer counted from rows."""

    dependencies = [("jobs", "0008_no_packages")]

    operations = [migrations.RemoveIndex(model_name="job", name="job_queue")]
