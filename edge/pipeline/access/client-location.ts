import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import type { EdgeRequest } from '../../http/server.ts'

/** Locates the client of a request, using only sources that the client cannot forge. */

/**
 * Returns the client's IP address. Behind a trusted proxy it is the last entry of `X-Forwarded-For`, which the proxy
 * adds. A client can forge the earlier entries.
 */
export function readClientAddress({ trustProxy }: Settings, request: EdgeRequest): string {
  const forwarded = trustProxy ? request.header('x-forwarded-for').split(',').at(-1)!.trim() : ''
  return forwarded === '' ? request.address : forwarded
}

const LOCATION_FORMAT = /^[^\p{Cc}]{1,100}$/u

/** Returns the location that the trusted proxy reports for the address, such as `DE`; null if it reports none. */
export function readClientLocation({ geoHeader }: Settings, request: EdgeRequest): string | null {
  const place = geoHeader === null ? '' : request.header(geoHeader).trim()
  return LOCATION_FORMAT.test(place) ? place : null
}
