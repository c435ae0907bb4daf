/**
 * Connection strings that name several servers, as libpq has them
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-MULTIPLE-HOSTS): `pg` takes one.
 */
export interface Servers {
  /** A connection string for each server, in the order in which they are tried. */
  readonly urls: readonly string[]
  /** `target_session_attrs`: `read-write` and `primary` want a server that takes writes. */
  readonly wanted: 'any' | 'primary' | 'standby'
}

const ATTRIBUTES = 'target_session_attrs'
const URL_PARTS = /^(postgres(?:ql)?:\/\/)([^@/]*@)?([^/?]*)(\/[^?]*)?(\?.*)?$/
const WANTED: ReadonlyMap<string, Servers['wanted']> = new Map([
  ['any', 'any'],
  ['read-write', 'primary'],
  ['primary', 'primary'],
  ['standby', 'standby'],
])

/** @throws a TypeError that says what is wrong with the connection string; it never quotes it, for it holds a password. */
export function serversOf(url: string): Servers {
  const parts = URL_PARTS.exec(url)
  if (parts === null) throw new TypeError('must be postgresql://USER:PASSWORD@HOST:PORT/NAME')
  const [, scheme = '', user = '', hosts = '', path = '', search = ''] = parts
  const parameters = new URLSearchParams(search)
  const attributes = parameters.get(ATTRIBUTES) ?? 'any'
  const wanted = WANTED.get(attributes)
  if (wanted === undefined)
    throw new TypeError(`${ATTRIBUTES} must be ${[...WANTED.keys()].join(', ')}, not ${attributes}`)
  parameters.delete(ATTRIBUTES)
  const rest = parameters.size === 0 ? '' : `?${parameters}`
  return {
    urls: hosts.split(',').map((host) => `${scheme}${user}${host}${path}${rest}`),
    wanted,
  }
}

/** The same servers, of which a standby is wanted. */
export function standbyUrl(url: string): string {
  if (serversOf(url).wanted === 'standby') return url
  const [servers, parameters = ''] = url.split('?')
  return `${servers}?${ATTRIBUTES}=standby&${parameters}`
}
