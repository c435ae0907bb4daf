import { type LookupAddress, lookup, promises } from 'node:dns'
import type { LookupFunction } from 'node:net'

// A lookup must fail before the webhook times out, even if the name servers are silent.
const TIMEOUT_MS = 2000
const TRIES = 2
// After these errors the name may still be local to this machine: in its hosts file or under a search domain.
const UNKNOWN_NAME_CODES = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED'])

/**
 * Creates a lookup for untrusted host names, which queries name servers directly. `dns.lookup` would occupy one of the two
 * threads that serve all lookups of the process, for up to 10 s if the servers are silent. A few such names would delay
 * all mail, model calls and webhooks.
 *
 * If `local` is true, `dns.lookup` retries names that DNS does not know; silent servers cause no retry. `servers` replaces
 * the machine's name servers.
 */
export function createLookup(local: boolean, servers?: readonly string[]): LookupFunction {
  return (name, options, callback) => {
    // Use a new resolver for each lookup (0.1 ms): it reads the machine's servers only once, and the network may
    // change.
    const resolver = new promises.Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
    if (servers !== undefined) resolver.setServers(servers)
    const addresses = /(^|\.)localhost$/i.test(name)
      ? Promise.reject(LOCAL_NAME)
      : resolveAddresses(resolver, name)
    addresses.then(
      (found) =>
        options.all === true ? callback(null, found) : callback(null, found[0]!.address, found[0]!.family),
      (error) =>
        local && UNKNOWN_NAME_CODES.has(error.code) ? lookup(name, options, callback) : callback(error, ''),
    )
  }
}

const LOCAL_NAME = Object.assign(new Error('Local names are not queried in DNS'), { code: 'ENOTFOUND' })

async function resolveAddresses(resolver: promises.Resolver, name: string): Promise<LookupAddress[]> {
  const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const found = [
    ...(ipv4.status === 'fulfilled' ? ipv4.value.map((address) => ({ address, family: 4 })) : []),
    ...(ipv6.status === 'fulfilled' ? ipv6.value.map((address) => ({ address, family: 6 })) : []),
  ]
  if (found.length > 0) return found
  const reasons = [ipv4, ipv6].flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
  throw reasons.find(({ code }) => !UNKNOWN_NAME_CODES.has(code)) ?? reasons[0] ?? LOCAL_NAME
}
