import type { Settings } from '../../tasks/settings.ts'
import type { EdgeRequest, Headers } from './server.ts'

/** True if clients reach the service by https. */
export const isHttps = ({ publicBaseUrl }: Settings): boolean => publicBaseUrl.startsWith('https:')

/**
 * The name of a cookie of the service. Behind https it has the strictest prefix that its path admits: browsers then take
 * it only from this host, or with `__Secure-` only over https (RFC 6265bis, section 4.1.3).
 */
export function cookieName(settings: Settings, what: string, path = '/'): string {
  const prefix = isHttps(settings) ? (path === '/' ? '__Host-' : '__Secure-') : ''
  return `${prefix}${settings.projectName}_${what}`
}

/** The value of a cookie of a request, or null (RFC 6265, section 5.4). */
export function readCookie(request: EdgeRequest, name: string): string | null {
  const header = request.header('cookie')
  if (header === '') return null
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return null
}

/** Where a cookie is sent, and for how long. */
export interface CookieScope {
  readonly path: string
  readonly sameSite: 'Lax' | 'Strict'
  /** 0 deletes it. */
  readonly seconds: number
}

/** A Set-Cookie header (RFC 6265, section 4.1) of a cookie that scripts don't see. */
export function setCookie(
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
