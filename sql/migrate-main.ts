import { migrate } from './migrate.ts'

// The release step of a deployment: brings DATABASE_URL to the current schema.
const url = process.env.DATABASE_URL_UNPOOLED ?? process.env.DATABASE_URL
if (url === undefined || url === '') {
  process.stderr.write('DATABASE_URL: required\n')
  process.exit(2)
}
const applied = await migrate(url)
process.stdout.write(applied.length === 0 ? 'Nothing to migrate\n' : `Migrated: ${applied.join(', ')}\n`)
