import type { Header } from '../../http/reply.ts'
import type { EdgeRequest } from '../../http/server.ts'
import { readCookie } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'

/** The two cookies of a session: the access token for every path, the refresh token only for these routes. */

const REFRESH_PATH = '/api/v1/auth'

const sessionName = (edge: Edge): string => `${edge.settings.projectName}_session`
const refreshName = (edge: Edge): string => `${edge.settings.projectName}_refresh`

/** The refresh token that a request came with, or null. */
export function refreshCookie(edge: Edge, request: EdgeRequest): string | null {
  return readCookie(request, refreshName(edge))
}

/** Sets both cookies, for as long as their tokens live. */
export function sessionCookies(edge: Edge, accessToken: string, refreshToken: string): Header[] {
  const { accessTokenSeconds, refreshTokenSeconds } = edge.settings
  return [
    setCookie(edge, sessionName(edge), accessToken, '/', 'Lax', accessTokenSeconds),
    setCookie(edge, refreshName(edge), refreshToken, REFRESH_PATH, 'Strict', refreshTokenSeconds),
  ]
}

/** Clears both cookies. */
export function clearedCookies(edge: Edge): Header[] {
  return [
    setCookie(edge, sessionName(edge), '', '/', 'Lax', 0),
    setCookie(edge, refreshName(edge), '', REFRESH_PATH, 'Strict', 0),
  ]
}

/** A Set-Cookie header (RFC 6265, section 4.1); `seconds` 0 deletes the cookie. */
function setCookie(
  edge: Edge,
  name: string,
  value: string,
  path: string,
  sameSite: 'Lax' | 'Strict',
  seconds: number,
): Header {
  const secure = edge.settings.publicBaseUrl.startsWith('https:') ? '; Secure' : ''
  return [
    'set-cookie',
    `${name}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}${secure}`,
  ]
}
