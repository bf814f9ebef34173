from django.db import migrations


def put_into_own_groups(apps, schema_editor):  # type: ignore[no-untyped-def]
    """Jobs that are older than groups count for their account's own."""
    jobs = apps.get_model("jobs", "Job").objects
    for group in apps.get_model("groups", "Group").objects.exclude(own_account=None):
        jobs.filter(account_id=group.own_account_id, group=None).update(group=group)


class Migration(migrations.Migration):
    dependencies = [("jobs", "0005_job_group"), ("groups", "0002_own_groups")]

    operations = [migrations.RunPython(put_into_own_groups, migrations.RunPython.noop)]
