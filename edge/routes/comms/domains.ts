import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import {
  addDomain,
  checkDomain,
  Domain,
  DomainWithRecords,
  listDomains,
} from '../../../tasks/comms/domains.ts'
import { enqueue } from '../../../tasks/task.ts'
import type { Caller } from '../../auth.ts'
import type { Edge } from '../../context.ts'
import { route } from '../../route.ts'
import { Background, DomainName, DomainRequest } from './shapes.ts'

const SendingDomain = Domain.meta({ id: 'SendingDomain' })
const SendingDomainWithRecords = DomainWithRecords.meta({ id: 'SendingDomainWithRecords' })
const ERRORS = ['domain.not_configured', 'domain.refused', 'domain.failed'] as const

/** The domains that the account of the email provider sends from. The provider is asked by a job. */
export const domainRoutes = [
  route({
    method: 'get',
    path: '/domains',
    summary: 'The domains of the account',
    query: Background,
    response: z.array(SendingDomain),
    errors: ERRORS,
    job: async ({ tx, edge, ...input }) => enqueue(tx, listDomains, {}, optionsOf(edge, input)),
  }),

  route({
    method: 'post',
    path: '/domains',
    summary: 'Add a domain; the answer has the records that its DNS must have',
    description: 'A domain that the account has already is answered as it is.',
    query: Background,
    body: DomainRequest,
    response: SendingDomainWithRecords,
    errors: ERRORS,
    sideEffect: true,
    job: async ({ body, tx, edge, ...input }) => {
      const { name, region } = body
      const payload = { name, ...(region === undefined ? {} : { region }) }
      return enqueue(tx, addDomain, payload, optionsOf(edge, input))
    },
  }),

  route({
    method: 'post',
    path: '/domains/:domain/check',
    summary: 'Have the provider look at the DNS of a domain again',
    params: z.object({ domain: DomainName }),
    query: Background,
    response: SendingDomainWithRecords,
    errors: [...ERRORS, 'domain.missing'],
    sideEffect: true,
    job: async ({ params, tx, edge, ...input }) =>
      enqueue(tx, checkDomain, { name: params.domain }, optionsOf(edge, input)),
  }),
]

function optionsOf(edge: Edge, { caller, requestId }: { caller: Caller; requestId: string }) {
  if (edge.settings.email.apiKey === null) throw fail('domain.not_configured')
  return { ownerId: caller.ownerId, requestId, maxTries: edge.settings.workerMaxTries }
}
