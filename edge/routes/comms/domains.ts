import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import {
  addDomain,
  checkDomain,
  Domain,
  DomainWithRecords,
  listDomains,
} from '../../../tasks/comms/domains.task.ts'
import { createJob } from '../../../tasks/task.ts'
import type { Edge } from '../../pipeline/context.ts'
import { route } from '../../pipeline/route.ts'
import { DomainName, DomainRequest } from './shapes.ts'

const SendingDomain = Domain.meta({ id: 'SendingDomain' })
const SendingDomainWithRecords = DomainWithRecords.meta({ id: 'SendingDomainWithRecords' })
const DOMAIN_ERRORS = ['domain.not_configured', 'domain.refused', 'domain.failed'] as const

/** Routes for the account's sending domains. A job makes each call to the email provider. */
export const domainRoutes = [
  route({
    method: 'get',
    path: '/domains',
    summary: 'List sending domains',
    response: z.array(SendingDomain),
    errors: DOMAIN_ERRORS,
    task: ({ edge }) => {
      requireKey(edge)
      return createJob(listDomains, {})
    },
  }),

  route({
    method: 'post',
    path: '/domains',
    summary: 'Add a sending domain',
    description: 'Returns the records that its DNS must have. An existing domain is returned unchanged.',
    body: DomainRequest,
    response: SendingDomainWithRecords,
    errors: DOMAIN_ERRORS,
    sideEffect: true,
    task: ({ body: { name, region }, edge }) => {
      requireKey(edge)
      return createJob(addDomain, { name, ...(region === undefined ? {} : { region }) })
    },
  }),

  route({
    method: 'post',
    path: '/domains/:domain/check',
    summary: 'Recheck the DNS of a sending domain',
    params: z.object({ domain: DomainName }),
    response: SendingDomainWithRecords,
    errors: [...DOMAIN_ERRORS, 'domain.missing'],
    sideEffect: true,
    task: ({ params, edge }) => {
      requireKey(edge)
      return createJob(checkDomain, { name: params.domain })
    },
  }),
]

/** Requires an API key of the provider. @throws fail('domain.not_configured') */
function requireKey({ settings }: Edge): void {
  if (settings.email.apiKey === null) throw fail('domain.not_configured')
}
