/** Errors of accounts, credentials and proofs of identity: part of the table in `errors.ts`. */
export const accountErrors = {
  'auth.required': { detail: 'Not authenticated' },
  'auth.credentials': { detail: 'Incorrect email or password' },
  'auth.inactive': { detail: 'This account is deactivated' },
  'auth.forbidden': { detail: 'This requires the role {roles}' },
  'auth.refresh': { detail: 'The refresh token is missing, expired or revoked' },
  'auth.locked': {
    detail: 'This account is locked after too many failed logins; try again later',
  },
  'auth.not_yours': { detail: 'Only the account owner or an admin may do this' },
  'auth.registration_closed': { detail: 'Registration is closed' },
  'account.email_taken': { detail: 'An account with this email already exists' },
  'account.missing': { detail: 'User not found' },
  'account.no_fields': { detail: 'No fields to update' },
  'account.token': { detail: 'The token is invalid or has expired' },
  'account.last_admin': {
    detail: 'This is the last active admin; make another account an admin first',
  },
  'account.setup_token': {
    detail:
      'The setup link is invalid, or an admin already exists; sign in, or use the link printed at the next start',
  },
  'account.email_same': { detail: 'The account already uses this address' },
  'account.email_change_missing': { detail: 'No email change is pending' },
  'account.deletion_due': { detail: 'The account is being deleted; this can no longer be undone' },
  'account.session_missing': { detail: 'Session not found' },
  'export.missing': { detail: 'Export not found or expired' },
  'auth.totp_required': {
    detail: 'This account also requires a one-time code or a recovery code',
  },
  'auth.totp_wrong': {
    detail: 'The code is incorrect or already used; wait for the next one',
  },
  'auth.admin_factor': {
    detail: 'Admins need a second factor: set up one-time codes or sign in with a passkey',
  },
  'auth.proof_required': {
    detail:
      'This requires the password (and a one-time code, if enabled) or a sign-in within the last 10 minutes',
  },
  'auth.passkey': { detail: 'The passkey is unknown or could not be verified; try again' },
  'passkey.refused': { detail: 'The passkey could not be verified; start over' },
  'passkey.exists': { detail: 'This passkey is already registered' },
  'passkey.missing': { detail: 'Passkey not found' },
  'passkey.limit': { detail: 'An account can have at most {max} passkeys; delete one first' },
  'passkey.not_configured': {
    detail:
      'Passkeys need WEBAUTHN_RP_ID, or a PUBLIC_BASE_URL with a host name such as https://mill.example.com',
  },
  'account.proof_wrong': { detail: 'The password or the code is incorrect' },
  'account.password_short': {
    detail: 'A password needs at least {min} characters besides the email address and the service name',
  },
  'account.password_simple': {
    detail:
      'A password must mix at least {min} of: lowercase letters, uppercase letters, digits, other characters',
  },
  'account.password_common': {
    detail: 'This is one of the most common passwords; choose another',
  },
  'account.nobody': { detail: 'Authentication is disabled (AUTH_LEVEL=none)' },
  'account.totp_on': { detail: 'One-time codes are already enabled; disable them first' },
  'account.totp_off': { detail: 'One-time codes are not enabled' },
  'account.totp_unbegun': { detail: 'Call POST /api/v1/auth/totp first; it returns the secret' },
  'account.totp_code': { detail: "The code is incorrect; check the device's clock" },
  'auth.magic_links_off': { detail: 'Sign-in by emailed links is disabled' },
  'auth.sign_in_changed': { detail: 'The account changed during the sign-in; try again' },
  'oidc.not_configured': { detail: 'OpenID Connect is not configured: OIDC_ISSUER, OIDC_CLIENT_ID' },
  'oidc.state': { detail: 'The sign-in was not begun here or took too long; start over' },
  'oidc.refused': { detail: 'The OpenID Connect issuer refused the sign-in; start over' },
  'oidc.failed': { detail: 'The OpenID Connect issuer did not answer as expected; try again later' },
  'oidc.unverified': { detail: 'The OpenID Connect issuer has not verified an email address of this person' },
  'oidc.other_subject': {
    detail: 'The account is linked to another identity of this issuer; unlink it first',
  },
  'identity.missing': { detail: 'Identity not found' },
  'auth.token_expired': { detail: 'The access token has expired' },
  'auth.token_invalid': { detail: 'The access token is invalid, or its session has ended' },
} as const
