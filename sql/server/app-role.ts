import type { Client } from '../connections/driver.ts'
import { StartError } from './start-error.ts'

/**
 * Least privilege: the role of edges and workers reads and writes rows, but owns nothing. Only the owner, which
 * migrates, may change the schema. At run time, `security definer` functions of the owner create tables.
 */

const ROLE_QUERY = `select rolsuper as "isSuperuser", pg_has_role(rolname, current_user, 'member') as "isOwner"
  from pg_roles where rolname = $1`

/**
 * Checks the role of edges and workers.
 * @throws StartError if the role does not exist, or if it may change the schema.
 */
export async function checkAppRole(client: Client, role: string): Promise<void> {
  const { rows } = await client.query<{ isSuperuser: boolean; isOwner: boolean }>(ROLE_QUERY, [role])
  const found = rows[0]
  if (found === undefined)
    throw new StartError(
      `DATABASE_APP_ROLE: the role ${role} does not exist: create role ${role} login password '…'`,
    )
  if (found.isSuperuser || found.isOwner)
    throw new StartError(
      `DATABASE_APP_ROLE: ${role} is a superuser or has the rights of the schema owner; set an unprivileged role`,
    )
}

/**
 * Grants a role the rights of edges and workers, on existing and future tables. Idempotent. Must run in a transaction.
 */
export async function grantAppRole(client: Client, role: string): Promise<void> {
  await client.query("select set_config('millrace.app_role', $1, true)", [role])
  await client.query(GRANT_SCRIPT)
}

// Grants only on objects of the owner, because the schemas may also have tables and functions of extensions. Every role
// may call functions, except the `security definer` ones. The queue's tables have row level security without a policy,
// so only their owner sees rows.
const GRANT_SCRIPT = `
do $$
declare
  app constant name := current_setting('millrace.app_role');
  of_schema name;
  thing regclass;
  called regprocedure;
begin
  revoke create on schema public from public;
  foreach of_schema in array '{public,partitions,graphile_worker}'::name[] loop
    execute format('grant usage on schema %I to %I', of_schema, app);
    execute format('alter default privileges in schema %I grant select, insert, update, delete on tables to %I', of_schema, app);
    execute format('alter default privileges in schema %I grant usage, select on sequences to %I', of_schema, app);
    for thing in select oid from pg_class
      where relnamespace = of_schema::regnamespace and relkind in ('r', 'p', 'v') and pg_has_role(relowner, 'usage')
    loop
      execute format('grant select, insert, update, delete on %s to %I', thing, app);
    end loop;
    for thing in select oid from pg_class
      where relnamespace = of_schema::regnamespace and relkind = 'S' and pg_has_role(relowner, 'usage')
    loop
      execute format('grant usage, select on sequence %s to %I', thing, app);
    end loop;
  end loop;
  execute format('revoke insert, update, delete on migration, migration_functions, graphile_worker.migrations from %I', app);
  -- For VACUUM after an update of an index. Servers before 17 leave that to autovacuum.
  if current_setting('server_version_num')::int >= 170000 then
    execute format('grant maintain on rag_file, rag_chunk, rag_posting, rag_vector to %I', app);
  end if;
  for called in select oid from pg_proc
    where pronamespace = 'public'::regnamespace and prosecdef and pg_has_role(proowner, 'usage')
  loop
    execute format('grant execute on function %s to %I', called, app);
  end loop;
  for thing in select c.oid from pg_class c
    where relnamespace = 'graphile_worker'::regnamespace and relkind = 'r' and relrowsecurity
      and not exists (select from pg_policy where polrelid = c.oid and polname = app)
  loop
    execute format('create policy %I on %s to %1$I using (true) with check (true)', app, thing);
  end loop;
end $$`
