/** Errors of organizations, their members and invites: part of the table in `errors.ts`. */
export const orgErrors = {
  'org.missing': { detail: 'Organization not found' },
  'org.not_member': { detail: 'Only members of the organization may do this' },
  'org.forbidden': { detail: 'This requires the role {roles} in the organization' },
  'org.rank': {
    detail: 'You cannot grant a role above your own, or change a member who ranks above you',
  },
  'org.last_owner': {
    detail: 'An organization must have an owner; transfer ownership first, or delete the organization',
  },
  'org.owner_stays': {
    detail: 'The owner cannot be removed; ownership must be transferred first',
  },
  'org.slug_invalid': {
    detail:
      'The slug must be 1 to 63 lowercase letters, digits and hyphens, and must not start or end with a hyphen',
  },
  'org.slug_taken': { detail: 'An organization with this slug already exists' },
  'org.no_fields': { detail: 'No fields to update' },
  'org.role': { detail: 'The role must be owner, admin or member' },
  'org.transfer_self': { detail: 'You cannot transfer ownership to yourself' },
  'org.transfer_target': { detail: 'Ownership can only be transferred to a member' },
  'org.owner_inactive': { detail: 'A deactivated account cannot own an organization' },
  'member.missing': { detail: 'Member not found' },
  'member.exists': { detail: 'The user is already a member' },
  'member.unknown_users': { detail: 'Unknown user ids: {ids}' },
  'invite.missing': { detail: 'Invite not found' },
  'invite.pending': { detail: 'An invite for this address is already pending' },
  'invite.token': { detail: 'The invite token is invalid' },
  'invite.email': { detail: 'The invite is for a different email address' },
  'invite.unverified': {
    detail: 'Verify the address of your account first; POST /api/v1/auth/resend-verification emails a link',
  },
  'invite.accepted': { detail: 'The invite was already accepted' },
  'invite.revoked': { detail: 'The invite was revoked' },
  'invite.expired': { detail: 'The invite has expired' },
} as const
