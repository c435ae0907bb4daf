/**
 * Connection strings that name several servers, as libpq has them
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-MULTIPLE-HOSTS): `pg` takes one.
 */
export interface Servers {
  /** A connection string for each server, in the order in which they are tried. */
  readonly urls: readonly string[]
  /** Only a server that takes writes is wanted: `target_session_attrs=read-write` or `primary`. */
  readonly writable: boolean
}

const URL_PARTS = /^(postgres(?:ql)?:\/\/)([^@/]*@)?([^/?]*)(\/[^?]*)?(\?.*)?$/
const WRITABLE = new Set(['read-write', 'primary'])

/** @throws a TypeError that says what is wrong with the connection string; it never quotes it, for it holds a password. */
export function serversOf(url: string): Servers {
  const parts = URL_PARTS.exec(url)
  if (parts === null) throw new TypeError('must be postgresql://USER:PASSWORD@HOST:PORT/NAME')
  const [, scheme = '', user = '', hosts = '', path = '', search = ''] = parts
  const parameters = new URLSearchParams(search)
  const wanted = parameters.get('target_session_attrs') ?? 'any'
  if (wanted !== 'any' && !WRITABLE.has(wanted))
    throw new TypeError(`target_session_attrs must be any, read-write or primary, not ${wanted}`)
  parameters.delete('target_session_attrs')
  const rest = parameters.size === 0 ? '' : `?${parameters}`
  return {
    urls: hosts.split(',').map((host) => `${scheme}${user}${host}${path}${rest}`),
    writable: WRITABLE.has(wanted),
  }
}
