/** The errors of messages, their providers and the domains that mail is sent from, in the table of `errors.ts`. */
export const messageErrors = {
  'email.not_configured': {
    detail:
      'Email is not configured. Set EMAIL_PROVIDER_API_KEY or EMAIL_SMTP_URL, and EMAIL_PROVIDER_FROM_EMAIL.',
  },
  'email.refused': { detail: 'The email provider refused the message: {reason}' },
  'email.failed': {
    detail: 'The email provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'email.sender_unverified': {
    detail: 'The email provider does not send for {domain}: it is not a verified domain of the account',
  },
  'email.suppressed': {
    detail:
      'No mail is sent to {addresses}: it was refused for good or marked as spam. An admin can lift that.',
  },
  'email.attachments_missing': {
    detail: 'The documents to attach do not exist, or were deleted: {ids}',
  },
  'email.attachments_too_large': {
    detail: 'The attachments have {bytes} bytes in all; at most {limit} can be sent with an email',
  },
  'email.undelivered': { detail: 'The email provider took the message and could not send it: {reason}' },
  'email.events_not_configured': {
    detail: 'Events of the email provider are not configured. Set EMAIL_PROVIDER_WEBHOOK_SECRET.',
  },
  'domain.not_configured': {
    detail: 'The REST API of the email provider is not configured. Set EMAIL_PROVIDER_API_KEY.',
  },
  'domain.refused': { detail: 'The email provider refused the request: {reason}' },
  'domain.failed': {
    detail: 'The REST API of the email provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'domain.missing': { detail: 'The email provider account has no such domain' },
  'telephony.not_configured': {
    detail:
      'Telephony is not configured. Set TELEPHONY_ACCOUNT_SID, TELEPHONY_AUTH_TOKEN and TELEPHONY_PHONE_NUMBER.',
  },
  'telephony.refused': { detail: 'The telephony provider refused the request: {reason}' },
  'telephony.failed': {
    detail: 'The telephony provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'telephony.undelivered': { detail: 'The telephony provider took it and could not deliver it: {reason}' },
  'template.missing': { detail: 'There is no template named {name}' },
  'template.name_taken': { detail: 'A template of this name already exists' },
  'suppression.missing': { detail: 'Mail to this address is not suppressed' },
  'send.missing': { detail: 'Message not found' },
  'send.not_cancellable': { detail: 'The message can no longer be cancelled: it is {status}' },
  'send.event_invalid': {
    detail: 'The event is malformed, or the provider has not signed it, or not in the last minutes',
  },
} as const
