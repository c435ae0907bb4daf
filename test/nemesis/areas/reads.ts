import type { MakeArea } from '../area.ts'

const PATHS = [
  '/health',
  '/llm/status',
  '/llm/vendors',
  '/llm/models?limit=5',
  '/llm/current',
  '/api/v1/jobs?limit=50',
  '/api/v1/documents',
  '/api/v1/documents/tags',
  '/api/v1/blog/posts',
  '/api/v1/blog/admin/posts',
  '/api/v1/orgs/all',
  '/api/v1/auth/users',
  '/api/v1/comms/sends',
  '/api/v1/payment/status',
  '/api/v1/payment/transactions',
  '/api/v1/ai/conversations',
  '/api/v1/ai/usage/stats',
  '/api/v1/system/tables',
  '/api/v1/system/spending?days=7',
  '/api/v1/tasks',
  '/rag/collections',
  '/metrics',
]

/** Requests read-only routes at random. */
export const reads: MakeArea = (admin) => ({
  act: async () => void (await admin.ask(admin.chance.pick(PATHS))),
  judge: async () => [],
})
