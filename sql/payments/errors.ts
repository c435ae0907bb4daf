/** Errors of payments: part of the table in `errors.ts`. */
export const paymentErrors = {
  'payment.not_configured': { detail: 'Payments are not configured. Set PROVIDER_SECRET_KEY.' },
  'payment.webhook_not_configured': {
    detail: 'Payment events are not configured. Set PROVIDER_WEBHOOK_SECRET.',
  },
  'payment.payload': { detail: 'Invalid payload' },
  'payment.rejected': { detail: '{reason}' },
  'payment.declined': { detail: '{reason}' },
  'payment.key': {
    detail: 'The payment provider rejected PROVIDER_SECRET_KEY: {reason}',
  },
  'payment.failed': {
    detail: 'The payment provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'payment.customer_missing': {
    detail: 'The account is no customer of the payment provider yet; its first checkout makes it one',
  },
  'transaction.missing': { detail: 'Transaction not found' },
  'transaction.not_refundable': {
    detail: 'Only a successful charge can be refunded; this transaction is {status}',
  },
  'transaction.refund_too_large': {
    detail: 'At most {available} of the charge can still be refunded',
  },
  'subscription.missing': { detail: 'Subscription not found' },
  'subscription.running': {
    detail: 'The account already has subscription {id} of this price; allow_second buys another one',
  },
  'subscription.canceled': { detail: 'The subscription is already canceled' },
  'subscription.unchangeable': { detail: 'The subscription cannot be changed: {reason}' },
  'dispute.missing': { detail: 'Dispute not found' },
} as const
