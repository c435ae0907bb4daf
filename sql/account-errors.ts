/** Errors of passwords, one-time codes, passkeys and other proofs of identity: part of the table in `errors.ts`. */
export const accountErrors = {
  'auth.totp_required': {
    detail: 'This account also requires a one-time code or a recovery code',
    code: 'totp_required',
  },
  'auth.totp_wrong': {
    detail: 'The code is incorrect or already used; wait for the next one',
    code: 'totp_wrong',
  },
  'auth.admin_factor': {
    detail: 'Admins need a second factor: set up one-time codes or sign in with a passkey',
    code: 'admin_factor_required',
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
      'Passkeys need a PUBLIC_BASE_URL with a host name, such as https://mill.example.com or http://localhost:8000',
  },
  'account.proof_wrong': { detail: 'The password or the code is incorrect' },
  'account.password_short': {
    detail: 'A password needs at least {min} characters besides the email address and the service name',
    code: 'password_short',
  },
  'account.password_simple': {
    detail:
      'A password must mix at least {min} of: lowercase letters, uppercase letters, digits, other characters',
    code: 'password_simple',
  },
  'account.password_common': {
    detail: 'This is one of the most common passwords; choose another',
    code: 'password_common',
  },
  'account.nobody': { detail: 'Authentication is disabled (AUTH_LEVEL=none)' },
  'account.totp_on': { detail: 'One-time codes are already enabled; disable them first' },
  'account.totp_off': { detail: 'One-time codes are not enabled' },
  'account.totp_unbegun': { detail: 'Call POST /api/v1/auth/totp first; it returns the secret' },
  'account.totp_code': { detail: "The code is incorrect; check the device's clock" },
} as const
