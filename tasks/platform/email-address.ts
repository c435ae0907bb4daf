import { domainToASCII } from 'node:url'
import { z } from 'zod'

/**
 * Email addresses in requests and settings. Only this file decides which are valid and which are equal. Domains are
 * stored, shown and used in their ASCII form (UTS 46), so `bücher.example` and `xn--bcher-kva.example` are the same.
 */

// RFC 5321, section 4.5.3.1, and RFC 1035, section 2.3.4.
const MAX_LOCAL_BYTES = 64
const MAX_ADDRESS_BYTES = 254
const MAX_DOMAIN_BYTES = 253

const LOCAL_PATTERN = /^(?!\.)(?!.*\.\.)[A-Za-z0-9_'+\-.]*[A-Za-z0-9_+-]$/
// Labels have at most 63 bytes. The last one is a word or an internationalized label, but no number.
const DOMAIN_PATTERN =
  /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?:[a-z]{2,63}|xn--[a-z0-9-]{0,58}[a-z0-9])$/
// The converter reads other ASCII characters as parts of a URL.
const CONVERTIBLE_PATTERN = /^[A-Za-z0-9.\-\u0080-\u{10ffff}]{1,253}$/u

/** Returns the ASCII form of a domain name in lower case; null if the name is invalid. */
export function normalizeDomain(typed: string): string | null {
  const domain = CONVERTIBLE_PATTERN.test(typed) ? domainToASCII(typed) : ''
  return domain.length <= MAX_DOMAIN_BYTES && DOMAIN_PATTERN.test(domain) ? domain : null
}

/**
 * Returns an address with its domain in ASCII; null if it is invalid. Keeps the case before the @, which a recipient's
 * server may distinguish.
 */
export function normalizeAddress(typed: string): string | null {
  const trimmed = typed.trim()
  const at = trimmed.lastIndexOf('@')
  const local = trimmed.slice(0, Math.max(at, 0))
  if (local.length > MAX_LOCAL_BYTES || !LOCAL_PATTERN.test(local)) return null
  const domain = normalizeDomain(trimmed.slice(at + 1))
  const address = `${local}@${domain}`
  return domain === null || address.length > MAX_ADDRESS_BYTES ? null : address
}

/** Returns an address as accounts store it: like {@link normalizeAddress}, in lower case. */
export const normalizeAccountAddress = (typed: string): string | null =>
  normalizeAddress(typed)?.toLowerCase() ?? null

/**
 * Returns a search text with the domain in it in ASCII. The text may be a part of an address. Null if that changes
 * nothing.
 */
export function normalizeDomainInSearch(search: string): string | null {
  const at = search.lastIndexOf('@')
  const typed = search.slice(at + 1)
  const domain = CONVERTIBLE_PATTERN.test(typed) ? domainToASCII(typed) : ''
  return domain === '' || domain === typed.toLowerCase() ? null : search.slice(0, at + 1) + domain
}

const buildAddressSchema = (normalize: (typed: string) => string | null) =>
  z
    .string()
    .max(320)
    .transform((typed, { issues }) => {
      const address = normalize(typed)
      if (address !== null) return address
      issues.push({ code: 'invalid_format', format: 'email', input: typed })
      return z.NEVER
    })
    .meta({ format: 'email' })

/** An email address to which a message is sent. */
export const Address = buildAddressSchema(normalizeAddress)

/** An email address of an account, in lower case. */
export const AccountAddress = buildAddressSchema(normalizeAccountAddress)
