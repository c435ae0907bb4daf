import { cookieName, readCookie, setCookie } from '../../http/cookies.ts'
import type { Header } from '../../http/reply.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Edge } from '../../pipeline/context.ts'

/**
 * Two cookies hold a session: the access token for every path, the refresh token only for these routes. A third cookie
 * outlives the session and proves an earlier sign-in from this browser.
 */

const REFRESH_PATH = '/api/v1/auth'

// Browsers limit the lifetime of a cookie to 400 days.
const DEVICE_SECONDS = 400 * 86_400

const sessionCookieName = (edge: Edge): string => cookieName(edge.settings, 'session')
const refreshCookieName = (edge: Edge): string => cookieName(edge.settings, 'refresh', REFRESH_PATH)
const deviceCookieName = (edge: Edge): string => cookieName(edge.settings, 'device', REFRESH_PATH)

/** Returns the refresh token of a request; null if it has none. */
export function readRefreshCookie(edge: Edge, request: EdgeRequest): string | null {
  return readCookie(request, refreshCookieName(edge))
}

/** Returns the device cookie of a browser that has signed in before; null if the request has none. */
export function readDeviceCookie(edge: Edge, request: EdgeRequest): string | null {
  return readCookie(request, deviceCookieName(edge))
}

/** Returns a header that sets the cookie for {@link readDeviceCookie}. */
export function setDeviceCookie(edge: Edge, value: string): Header {
  const scope = { path: REFRESH_PATH, sameSite: 'Strict', seconds: DEVICE_SECONDS } as const
  return setCookie(edge.settings, deviceCookieName(edge), value, scope)
}

/** Returns headers that set both cookies of a session, with the lifetimes of their tokens. */
export function setSessionCookies(edge: Edge, accessToken: string, refreshToken: string): Header[] {
  const { accessTokenSeconds, refreshTokenSeconds } = edge.settings
  return setCookies(edge, [accessToken, accessTokenSeconds], [refreshToken, refreshTokenSeconds])
}

/** Returns headers that clear both cookies of a session. */
export function clearSessionCookies(edge: Edge): Header[] {
  return setCookies(edge, ['', 0], ['', 0])
}

type Cookie = readonly [token: string, seconds: number]

function setCookies(
  edge: Edge,
  [access, accessSeconds]: Cookie,
  [refresh, refreshSeconds]: Cookie,
): Header[] {
  const session = { path: '/', sameSite: 'Lax', seconds: accessSeconds } as const
  const refreshing = { path: REFRESH_PATH, sameSite: 'Strict', seconds: refreshSeconds } as const
  return [
    setCookie(edge.settings, sessionCookieName(edge), access, session),
    setCookie(edge.settings, refreshCookieName(edge), refresh, refreshing),
  ]
}
