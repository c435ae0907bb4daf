import type { Settings } from '../../tasks/settings.ts'
import type { EdgeRequest } from '../http/server.ts'

/** Where a request comes from, as far as that is not just the client's word. */

/**
 * The client's address: behind a trusted proxy the last one that `X-Forwarded-For` names, which the proxy has added
 * itself; those before it are the client's word.
 */
export function addressOf({ trustProxy }: Settings, request: EdgeRequest): string {
  const forwarded = trustProxy ? request.header('x-forwarded-for').split(',').at(-1)!.trim() : ''
  return forwarded === '' ? request.address : forwarded
}

const PLACE = /^[^\p{Cc}]{1,100}$/u

/** The place of that address in the words of the trusted proxy, such as `DE`; null when it says none. */
export function placeOf({ geoHeader }: Settings, request: EdgeRequest): string | null {
  const place = geoHeader === null ? '' : request.header(geoHeader).trim()
  return PLACE.test(place) ? place : null
}
