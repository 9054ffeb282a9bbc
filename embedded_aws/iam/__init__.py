"""IAM, as far as services act in the name of a role.

moto keeps the roles. `trust` says whether a service may assume a role, and `permissions` what a
role may do. `s3_access` is S3 with a role's permissions. `simulation` answers
SimulatePrincipalPolicy by the same rules.
"""
