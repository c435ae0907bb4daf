import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { jwtVerify } from 'jose'
import pg from 'pg'
import { readDocument } from '../../../sql/documents/documents.ts'

/** The reference for reads: an ordinary Fastify server with a `pg` pool, the same SQL and the same token check. */

const { DATABASE_URL, POOL_SIZE, SECRET_KEY, TOKEN_CACHE } = process.env
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: Number(POOL_SIZE) })
const key = new TextEncoder().encode(SECRET_KEY)
const tokenCache = new Map<string, { accountId: number; expiresAt: number }>()

async function verifyCaller(authorization: string | undefined): Promise<number> {
  const token = authorization?.startsWith('Bearer ') ? authorization.slice(7) : ''
  const found = TOKEN_CACHE === '1' ? tokenCache.get(token) : undefined
  if (found !== undefined && found.expiresAt * 1000 > Date.now()) return found.accountId
  const { payload } = await jwtVerify(token, key, {
    algorithms: ['HS256'],
    issuer: 'millrace',
    audience: 'millrace',
  })
  const verified = { accountId: Number(payload.sub), expiresAt: payload.exp ?? 0 }
  if (TOKEN_CACHE === '1') tokenCache.set(token, verified)
  return verified.accountId
}

const app = Fastify({ logger: false })
app.get<{ Params: { id: string } }>('/api/v1/documents/:id', async (request, reply) => {
  let caller: number
  try {
    caller = await verifyCaller(request.headers.authorization)
  } catch {
    return reply.code(401).send({ detail: 'Not authenticated' })
  }
  const { rows } = await pool.query<[string]>({
    ...readDocument,
    values: [Number(request.params.id), caller],
    rowMode: 'array',
  })
  if (rows[0] === undefined) return reply.code(404).send({ detail: 'No such document' })
  return reply.type('application/json; charset=utf-8').send(rows[0][0])
})
await app.listen({ host: '127.0.0.1', port: 0 })
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())
process.send!({ port: (app.server.address() as AddressInfo).port })
