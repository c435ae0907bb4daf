import { isIpAddress, isLoopback } from './addresses.ts'

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
