import type { MakeArea } from '../area.ts'
import { findMissingOrDuplicate } from '../area.ts'

/** Creates organizations, joins them and transfers them to another owner. */
export const organizations: MakeArea = (admin, user) => {
  const made: { readonly slug: string; readonly handedOver: boolean }[] = []
  let userId: Promise<number> | null = null

  return {
    act: async () => {
      userId ??= user.ask('/api/v1/auth/me').then(({ json }) => json.id as number)
      const slug = admin.createWord()
      const { json: org } = await admin.post('/api/v1/orgs', { json: { name: slug, slug } })
      const id = await userId
      await admin.post(`/api/v1/orgs/${org.id}/members?user_id=${id}&role=admin`)
      const handedOver = admin.chance.isHit(0.5)
      if (handedOver) await admin.post(`/api/v1/orgs/${org.id}/transfer-ownership`, { json: { user_id: id } })
      made.push({ slug, handedOver })
    },
    judge: async () => {
      const rows = await admin.world.query(
        `select o.slug, array_agg(m.role order by m.joined_at, m.user_id) as roles, count(distinct m.user_id)::int as people,
          count(*) filter (where m.role = 'owner')::int as owners
         from organization o left join organization_member m on m.organization_id = o.id group by o.slug`,
      )
      const found = findMissingOrDuplicate(
        'organization',
        made.map(({ slug }) => slug),
        rows.map(({ slug }) => String(slug)),
      )
      for (const { slug, roles, people, owners } of rows)
        if (owners !== 1) found.push(`organization ${slug} of ${people} has ${owners} owners: ${roles}`)
      for (const { slug, handedOver } of made) {
        const row = rows.find((one) => one.slug === slug)
        const roles = String(row?.roles)
        if (roles !== (handedOver ? 'admin,owner' : 'owner,admin'))
          found.push(`organization ${slug} has ${roles}`)
      }
      return found
    },
  }
}
