import { z } from 'zod'
import { type ErrorCode, Failure, fail } from '../../sql/errors.ts'
import type { EdgeRequest } from '../http/server.ts'
import type { Edge } from './context.ts'
import { maxJsonBytes } from './input.ts'

/** Shared parts of the routes that receive provider events. */

export const Received = z.strictObject({ received: z.literal('true') }).meta({ id: 'Received' })
export const RECEIVED = { received: 'true' } as const

/** The bytes that a provider signs. @throws fail(refused) for a body that is too large: such routes have one error for all. */
export function readEventBytes(edge: Edge, request: EdgeRequest, refused: ErrorCode): Promise<Uint8Array> {
  return request.body.bytes(maxJsonBytes(edge.settings)).catch((error) => {
    if (error instanceof Failure && error.code === 'request.too_large') throw fail(refused)
    throw error
  })
}
