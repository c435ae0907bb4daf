import { type LookupAddress, lookup, promises } from 'node:dns'
import type { LookupFunction } from 'node:net'

// A name whose servers say nothing is given up before a webhook is.
const TIMEOUT_MS = 2000
const TRIES = 2
// What says that a name may be known to this machine only: by its hosts file, or below one of its search domains.
const UNKNOWN = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED'])

/**
 * Finds the addresses of names that anybody may give us, by asking name servers. Node's own way occupies one of two threads
 * that all lookups of a process share until the servers of a name have answered, or for 10 s: a few names whose servers say nothing
 * would hold up the mail, models and webhooks of everybody.
 * @param local whether names that only this machine knows are found, too: by Node's own way, and not when servers are silent.
 * @param servers in place of the machine's.
 */
export function createLookup(local: boolean, servers?: readonly string[]): LookupFunction {
  return (name, options, callback) => {
    // For each name (0.1 ms): it reads which servers the machine has only once, and a network may change.
    const resolver = new promises.Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
    if (servers !== undefined) resolver.setServers(servers)
    const known = /(^|\.)localhost$/i.test(name) ? Promise.reject(UNASKED) : addressesOf(resolver, name)
    known.then(
      (found) =>
        options.all === true ? callback(null, found) : callback(null, found[0]!.address, found[0]!.family),
      (error) => (local && UNKNOWN.has(error.code) ? lookup(name, options, callback) : callback(error, '')),
    )
  }
}

const UNASKED = Object.assign(new Error('No name server is asked'), { code: 'ENOTFOUND' })

async function addressesOf(resolver: promises.Resolver, name: string): Promise<LookupAddress[]> {
  const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const found = [
    ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
  ]
  if (found.length > 0) return found
  const reasons = [four, six].flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
  throw reasons.find(({ code }) => !UNKNOWN.has(code)) ?? reasons[0] ?? UNASKED
}
