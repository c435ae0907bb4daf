import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type * as Ipaddr from 'ipaddr.js'

/** Helpers for IP addresses and host names. */

// Uses `require`, because an `import` of a CommonJS module makes Node scan it for named exports. For this module the
// scan costs 30 ms of CPU per process and thread.
const ipaddr: typeof Ipaddr = createRequire(import.meta.url)('ipaddr.js')

/**
 * Returns the network under which rate limits count an address: an IPv4 address itself, or the /64 of an IPv6 address.
 * A /64 is the smallest network of a site (RFC 6177). Ignores ports. Text that is not an address gets its own key.
 */
export function networkKeyOf(address: string): string {
  const bare = /^\[(.*)\](?::\d+)?$/.exec(address)?.[1] ?? /^([\d.]+):\d+$/.exec(address)?.[1] ?? address
  if (!ipaddr.isValid(bare))
    return `? ${createHash('sha256').update(address).digest('base64url').slice(0, 22)}`
  const parsed = ipaddr.process(bare)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/64`).toString()}/64`
}

/** True if a text is an IP address. */
export const isIpAddress = (text: string): boolean => ipaddr.isValid(text) && /[.:].*[.:]/.test(text)

/** Returns the host of a URL, without the brackets of an IPv6 address. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

/** True if a host is reachable only from this machine. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || (ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback')

/** True if a text is a range in CIDR notation. */
export const isCidrRange = (text: string): boolean => ipaddr.isValidCIDR(text)

/**
 * True if the service may connect to a host. An IP address must be public or in an allowed range. Host names pass,
 * because the connection checks the addresses that they resolve to.
 */
export function isAllowedHost(host: string, allowed: readonly string[]): boolean {
  if (!ipaddr.isValid(host)) return true
  const address = ipaddr.process(host)
  return (
    address.range() === 'unicast' ||
    allowed.some((range) => {
      const [network, bits] = ipaddr.parseCIDR(range)
      return network.kind() === address.kind() && address.match(network, bits)
    })
  )
}

/**
 * Hosts that an edge serves. The check prevents DNS rebinding, in which another site's name resolves to this machine
 * and arrives as `Host`. If the edge answered, that site's pages could read its responses.
 */
export interface ServedHosts {
  /** Host names in lower case, without port; `*.example.com` matches all names below `example.com`. */
  readonly names: readonly string[]
  /** True if the edge also serves every IP address. */
  readonly addresses: boolean
}

interface HostSettings {
  readonly production: boolean
  readonly host: string
  readonly publicBaseUrl: string
  readonly allowedHosts: readonly string[] | undefined
}

/** Returns the hosts that the settings allow; null allows every host. */
export function resolveServedHosts({
  production,
  host,
  publicBaseUrl,
  allowedHosts,
}: HostSettings): ServedHosts | null {
  if (allowedHosts?.includes('*')) return null
  if (allowedHosts !== undefined) return { names: allowedHosts, addresses: false }
  const own = new URL(publicBaseUrl).hostname
  if (isLoopback(host)) return { names: ['localhost', '*.localhost', own], addresses: true }
  return production ? { names: [own], addresses: false } : null
}

/** True if a `Host` header names a served host; ignores the port. */
export function isServedHost({ names, addresses }: ServedHosts, host: string): boolean {
  const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
  if (addresses && isIpAddress(name.replace(/^\[(.*)\]$/, '$1'))) return true
  return names.some((served) =>
    served.startsWith('*.')
      ? name.endsWith(served.slice(1)) && name.length > served.length - 1
      : name === served,
  )
}

// Parsers disagree about backslashes, white space and credentials in URLs.
const PLAIN_URL_PATTERN = /^https?:\/\/[^\s\p{Cc}\\/?#@]+(?:[/?#][^\s\p{Cc}\\]*)?$/iu

/**
 * True if a link may lead to this page of the service or of an allowed front end. Compares whole origins, so a token
 * never reaches another site.
 */
export function isAllowedRedirect(
  {
    publicBaseUrl,
    corsOrigins,
  }: { readonly publicBaseUrl: string; readonly corsOrigins: ReadonlySet<string> },
  redirectTo: string,
): boolean {
  if (!PLAIN_URL_PATTERN.test(redirectTo) || !URL.canParse(redirectTo)) return false
  const { origin } = new URL(redirectTo)
  return origin === new URL(publicBaseUrl).origin || corsOrigins.has(origin)
}
