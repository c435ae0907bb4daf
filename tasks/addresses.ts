import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type * as Ipaddr from 'ipaddr.js'

/** IP addresses and hosts: of clients, those that requests of callers may reach, and those that an edge answers for. */

// Not imported: in what is imported from CommonJS, Node looks for names by a loop that V8 then compiles, which for this
// file takes each process and each thread 30 ms of CPU.
const ipaddr: typeof Ipaddr = createRequire(import.meta.url)('ipaddr.js')

/**
 * The network that is counted for an address: an IPv4 address itself, the /64 of an IPv6 address, the least that a site
 * gets (RFC 6177). A port is dropped; a text that is no address counts for itself.
 */
export function networkOf(address: string): string {
  const bare = /^\[(.*)\](?::\d+)?$/.exec(address)?.[1] ?? /^([\d.]+):\d+$/.exec(address)?.[1] ?? address
  if (!ipaddr.isValid(bare))
    return `? ${createHash('sha256').update(address).digest('base64url').slice(0, 22)}`
  const parsed = ipaddr.process(bare)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/64`).toString()}/64`
}

/** True if a text is an IP address. */
export const isIpAddress = (text: string): boolean => ipaddr.isValid(text) && /[.:].*[.:]/.test(text)

/** The host of a URL, an IPv6 address without its brackets. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

/** True if only this machine reaches what listens on a host. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || (ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback')

/** Whether a text is a range in CIDR notation. */
export const isRange = (text: string): boolean => ipaddr.isValidCIDR(text)

/**
 * Whether a host may be connected to: a public address, or one of the ranges. A name may, as far as its text says: what it
 * resolves to is checked by the connection.
 */
export function mayBeReached(host: string, allowed: readonly string[]): boolean {
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
 * The hosts that an edge answers for. A web page whose name resolves to this machine (DNS rebinding) sends its own name as
 * `Host`: to answer it would make the service part of that page's site.
 */
export interface ServedHosts {
  /** Host names in lower case, without port; `*.example.com` stands for all names below `example.com`. */
  readonly names: readonly string[]
  /** True if any IP address is served, too. */
  readonly addresses: boolean
}

interface Given {
  readonly production: boolean
  readonly host: string
  readonly publicBaseUrl: string
  readonly allowedHosts: readonly string[] | undefined
}

/** What the settings allow; null for every host. */
export function servedHosts({ production, host, publicBaseUrl, allowedHosts }: Given): ServedHosts | null {
  if (allowedHosts?.includes('*')) return null
  if (allowedHosts !== undefined) return { names: allowedHosts, addresses: false }
  const own = new URL(publicBaseUrl).hostname
  if (isLoopback(host)) return { names: ['localhost', '*.localhost', own], addresses: true }
  return production ? { names: [own], addresses: false } : null
}

/** True if the value of a `Host` header names a served host; its port does not matter. */
export function isServed({ names, addresses }: ServedHosts, host: string): boolean {
  const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
  if (addresses && isIpAddress(name.replace(/^\[(.*)\]$/, '$1'))) return true
  return names.some((served) =>
    served.startsWith('*.')
      ? name.endsWith(served.slice(1)) && name.length > served.length - 1
      : name === served,
  )
}
