from django.db import migrations


def make_own_groups(apps, schema_editor):  # type: ignore[no-untyped-def]
    """Accounts that are older than groups get the group that new ones are made with."""
    group_model = apps.get_model("groups", "Group")
    membership_model = apps.get_model("groups", "Membership")
    for account in apps.get_model("accounts", "Account").objects.order_by("id"):
        group = group_model.objects.create(name=account.username, own_account=account)
        membership_model.objects.create(group=group, account=account, role="owner")


class Migration(migrations.Migration):
    dependencies = [("groups", "0001_initial"), ("accounts", "0004_credentials")]

    operations = [migrations.RunPython(make_own_groups, migrations.RunPython.noop)]
