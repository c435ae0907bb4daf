/**
 * The access rule of a route:
 * - `public`: anyone; a valid credential identifies the caller.
 * - `user`: any active account.
 * - `moderator`, `admin`: accounts with this role or a higher one.
 * - `editor`: moderators and admins under `AUTH_LEVEL=rbac`, any active account under `basic`.
 * - `open`: like `user`, unless `OPEN_AREAS` or `AUTH_LEVEL=none` opens the area.
 * - `operator`: like `admin` under `AUTH_LEVEL=rbac` and like `user` under `basic`, unless the area is open.
 */
export type Auth = 'public' | 'user' | 'editor' | 'moderator' | 'admin' | 'open' | 'operator'

export type Role = 'user' | 'moderator' | 'admin'
