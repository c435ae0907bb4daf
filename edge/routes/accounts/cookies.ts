import { formatCookieName, formatSetCookie, readCookie } from '../../http/cookies.ts'
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

const formatSessionCookieName = (edge: Edge): string => formatCookieName(edge.settings, 'session')
const formatRefreshCookieName = (edge: Edge): string =>
  formatCookieName(edge.settings, 'refresh', REFRESH_PATH)
const formatDeviceCookieName = (edge: Edge): string => formatCookieName(edge.settings, 'device', REFRESH_PATH)

/** Returns the refresh token of a request; null if it has none. */
export function readRefreshCookie(edge: Edge, request: EdgeRequest): string | null {
  return readCookie(request, formatRefreshCookieName(edge))
}

/** Returns the device cookie of a browser that has signed in before; null if the request has none. */
export function readDeviceCookie(edge: Edge, request: EdgeRequest): string | null {
  return readCookie(request, formatDeviceCookieName(edge))
}

/** Returns a header that sets the device cookie. */
export function buildDeviceCookie(edge: Edge, value: string): Header {
  const scope = { path: REFRESH_PATH, sameSite: 'Strict', seconds: DEVICE_SECONDS } as const
  return formatSetCookie(edge.settings, formatDeviceCookieName(edge), value, scope)
}

/** Returns headers that set both cookies of a session, with the lifetimes of their tokens. */
export function buildTokenCookies(edge: Edge, accessToken: string, refreshToken: string): Header[] {
  const { accessTokenSeconds, refreshTokenSeconds } = edge.settings
  return buildSetCookies(edge, [accessToken, accessTokenSeconds], [refreshToken, refreshTokenSeconds])
}

/** Returns headers that clear both cookies of a session. */
export function buildExpiredCookies(edge: Edge): Header[] {
  return buildSetCookies(edge, ['', 0], ['', 0])
}

type Cookie = readonly [token: string, seconds: number]

function buildSetCookies(
  edge: Edge,
  [access, accessSeconds]: Cookie,
  [refresh, refreshSeconds]: Cookie,
): Header[] {
  const session = { path: '/', sameSite: 'Lax', seconds: accessSeconds } as const
  const refreshing = { path: REFRESH_PATH, sameSite: 'Strict', seconds: refreshSeconds } as const
  return [
    formatSetCookie(edge.settings, formatSessionCookieName(edge), access, session),
    formatSetCookie(edge.settings, formatRefreshCookieName(edge), refresh, refreshing),
  ]
}
