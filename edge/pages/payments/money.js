// Amounts of money. The service counts them in the smallest unit of their currency, as the provider does.

// The minor units of Stripe. Intl has other digits for some of these.
const WHOLE = new Set(['bif', 'clp', 'djf', 'gnf', 'jpy', 'kmf', 'krw', 'mga', 'pyg', 'rwf', 'vnd', 'vuv', 'xaf', 'xof', 'xpf'])
const THREE = new Set(['bhd', 'jod', 'kwd', 'omr', 'tnd'])

/** Returns the number of digits after the point. */
export const digitsOf = (currency) => (WHOLE.has(currency) ? 0 : THREE.has(currency) ? 3 : 2)

/** Formats an amount; null if it is unknown. */
export function formatMoney(amount, currency) {
  if (amount === null || currency === null) return null
  const digits = digitsOf(currency)
  return new Intl.NumberFormat('en', { style: 'currency', currency, minimumFractionDigits: digits, maximumFractionDigits: digits }).format(amount / 10 ** digits)
}

/** Formats an amount for an axis, in about three digits. */
export const formatMoneyShort = (amount, currency) =>
  new Intl.NumberFormat('en', { style: 'currency', currency, notation: 'compact', maximumFractionDigits: 1, minimumFractionDigits: 0 }).format(amount / 10 ** digitsOf(currency))

/** Returns an amount in the smallest unit. */
export const toSmallestUnit = (value, currency) => Math.round(value * 10 ** digitsOf(currency))
