/** Errors of messages, message providers and sending domains. `errors.ts` adds them to its table. */
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
    detail: '{domain} is not a verified domain of the email provider account',
  },
  'email.suppressed': {
    detail:
      'Mail to {addresses} is suppressed after a permanent bounce, a spam complaint or an unsubscription. An admin can lift the suppression.',
  },
  'email.attachments_missing': {
    detail: 'The attached documents do not exist or were deleted: {ids}',
  },
  'email.attachments_too_large': {
    detail: 'The attachments total {bytes} bytes; the limit per email is {limit}',
  },
  'email.undelivered': { detail: 'The email provider failed to deliver the message: {reason}' },
  'email.events_not_configured': {
    detail: 'Email provider events are not configured. Set EMAIL_PROVIDER_WEBHOOK_SECRET.',
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
  'telephony.suppressed': {
    detail:
      'Text messages to {number} are suppressed because its owner has opted out. An admin can lift the suppression.',
  },
  'telephony.failed': {
    detail: 'The telephony provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'telephony.undelivered': { detail: 'The carrier failed to deliver the message: {reason}' },
  'template.missing': { detail: 'There is no template named {name}' },
  'template.name_taken': { detail: 'A template with this name already exists' },
  'suppression.missing': { detail: 'Messages to this address are not suppressed' },
  'suppression.link_invalid': { detail: 'This unsubscribe link is invalid or incomplete' },
  'send.missing': { detail: 'Message not found' },
  'send.not_cancellable': { detail: 'The message can no longer be cancelled: it is {status}' },
  'send.event_invalid': {
    detail: 'The event is malformed, or its signature is invalid or expired',
  },
} as const
