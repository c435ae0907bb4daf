/**
 * A libpq connection string, split by server. It may name several servers, but `pg` accepts one. See
 * https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-MULTIPLE-HOSTS.
 */
export interface Servers {
  /** One connection string per server, in the order in which to try them. */
  readonly urls: readonly string[]
  /** Kind of server that `target_session_attrs` requires: `read-write` and `primary` both require a writable one. */
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

/**
 * Splits a connection string into one per server.
 *
 * @throws a TypeError that describes the problem without quoting the string, which contains a password.
 */
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

/** Returns the connection string with `target_session_attrs=standby` added if needed. */
export function standbyUrl(url: string): string {
  if (serversOf(url).wanted === 'standby') return url
  const [servers, parameters = ''] = url.split('?')
  return `${servers}?${ATTRIBUTES}=standby&${parameters}`
}
