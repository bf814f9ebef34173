from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("jobs", "0007_trainers_asked")]

    # Packages are snapshots in the file store, which knows all about them.
    operations = [migrations.DeleteModel(name="Package")]
