/**
 * A libpq connection string, split into one string per server because `pg` accepts only one server. See
 * https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-MULTIPLE-HOSTS.
 */
export interface Servers {
  /** One connection string per server, in the order in which to try them. */
  readonly urls: readonly string[]
  /** Kind of server that `target_session_attrs` requires: `read-write` and `primary` both require a writable one. */
  readonly requiredRole: 'any' | 'primary' | 'standby'
}

const ATTRIBUTES = 'target_session_attrs'
const URL_PARTS = /^(postgres(?:ql)?:\/\/)([^@/]*@)?([^/?]*)(\/[^?]*)?(\?.*)?$/
const ROLE_BY_ATTRIBUTE: ReadonlyMap<string, Servers['requiredRole']> = new Map([
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
export function parseServers(url: string): Servers {
  const parts = URL_PARTS.exec(url)
  if (parts === null) throw new TypeError('must be postgresql://USER:PASSWORD@HOST:PORT/NAME')
  const [, scheme = '', user = '', hosts = '', path = '', search = ''] = parts
  const parameters = new URLSearchParams(search)
  const attributes = parameters.get(ATTRIBUTES) ?? 'any'
  const requiredRole = ROLE_BY_ATTRIBUTE.get(attributes)
  if (requiredRole === undefined)
    throw new TypeError(
      `${ATTRIBUTES} must be ${[...ROLE_BY_ATTRIBUTE.keys()].join(', ')}, not ${attributes}`,
    )
  parameters.delete(ATTRIBUTES)
  const rest = parameters.size === 0 ? '' : `?${parameters}`
  return {
    urls: hosts.split(',').map((host) => `${scheme}${user}${host}${path}${rest}`),
    requiredRole,
  }
}

/** Returns the connection string with `target_session_attrs=standby` added if needed. */
export function requireStandby(url: string): string {
  if (parseServers(url).requiredRole === 'standby') return url
  const [servers, parameters = ''] = url.split('?')
  return `${servers}?${ATTRIBUTES}=standby&${parameters}`
}
