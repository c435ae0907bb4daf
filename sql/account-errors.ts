/** The errors of what accounts sign in with beside a password, in the table of `errors.ts`. */
export const accountErrors = {
  'auth.totp_required': {
    detail: 'This account also needs a one-time code, or a recovery code',
    code: 'totp_required',
  },
  'auth.totp_wrong': {
    detail: 'The code is not correct, or has been used; wait for the next one',
    code: 'totp_wrong',
  },
  'auth.admin_factor': {
    detail: 'Admins need a second factor here: set one-time codes up, or sign in with a passkey',
    code: 'admin_factor_required',
  },
  'auth.proof_required': {
    detail:
      'This needs the password, and a code where those are asked for, or a sign-in within the last 10 minutes',
  },
  'auth.passkey': { detail: 'The passkey is not known here, or could not be verified; try again' },
  'passkey.refused': { detail: 'The passkey could not be verified; begin again' },
  'passkey.exists': { detail: 'This passkey is registered already' },
  'passkey.missing': { detail: 'Passkey not found' },
  'passkey.limit': { detail: 'An account may have {max} passkeys; delete one first' },
  'passkey.not_configured': {
    detail:
      'Passkeys need a PUBLIC_BASE_URL with a host name, such as https://mill.example.com or http://localhost:8000',
  },
  'account.proof_wrong': { detail: 'The password or the code is not correct' },
  'account.password_short': {
    detail: 'A password needs {min} characters or more beside the address and the name of the service',
    code: 'password_short',
  },
  'account.password_simple': {
    detail: 'A password needs {min} of: lower-case letters, upper-case letters, digits, other characters',
    code: 'password_simple',
  },
  'account.password_common': {
    detail: 'This is one of the most common passwords; choose another',
    code: 'password_common',
  },
  'account.nobody': { detail: 'Nobody signs in here (AUTH_LEVEL=none)' },
  'account.totp_on': { detail: 'One-time codes are on already; switch them off first' },
  'account.totp_off': { detail: 'One-time codes are not on' },
  'account.totp_unbegun': { detail: 'Begin with POST /api/v1/auth/totp, which gives the secret' },
  'account.totp_code': { detail: "The code is not correct; is the device's clock right?" },
} as const
