import type { Settings } from '../../tasks/platform/settings/settings.ts'
import type { EdgeRequest, Headers } from './server.ts'

/** True if clients reach the service over https. */
export const isHttps = ({ publicBaseUrl }: Settings): boolean => publicBaseUrl.startsWith('https:')

/**
 * Returns the full name of a cookie. Behind https it has the strictest prefix that its path allows (RFC 6265bis,
 * section 4.1.3). Browsers accept `__Host-` only from this host, and `__Secure-` only over https.
 */
export function formatCookieName(settings: Settings, what: string, path = '/'): string {
  const prefix = isHttps(settings) ? (path === '/' ? '__Host-' : '__Secure-') : ''
  return `${prefix}${settings.projectName}_${what}`
}

/** Returns the value of a request's cookie (RFC 6265, section 5.4); null if it is absent. */
export function readCookie(request: EdgeRequest, name: string): string | null {
  const header = request.header('cookie')
  if (header === '') return null
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return null
}

/** Scope and lifetime of a cookie. */
export interface CookieScope {
  readonly path: string
  readonly sameSite: 'Lax' | 'Strict'
  /** Max-Age; 0 deletes the cookie. */
  readonly seconds: number
}

/** Returns a Set-Cookie header (RFC 6265, section 4.1) for a cookie that scripts cannot read. */
export function formatSetCookie(
  settings: Settings,
  name: string,
  value: string,
  scope: CookieScope,
): Headers[number] {
  const { path, sameSite, seconds } = scope
  const secure = isHttps(settings) ? '; Secure' : ''
  return [
    'set-cookie',
    `${name}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}${secure}`,
  ]
}
