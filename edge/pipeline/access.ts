/**
 * Who may call: `public` anyone (the caller is there when they sent a valid credential), `user` any active account,
 * a role that role and those above it, `editor` moderators and admins under `AUTH_LEVEL=rbac` and any active account
 * under `basic`, `open` like `user` unless `OPEN_AREAS` or `AUTH_LEVEL=none` open the area, `operator` like `admin` under
 * `AUTH_LEVEL=rbac` and like `user` under `basic` unless the area is open.
 */
export type Auth = 'public' | 'user' | 'editor' | 'moderator' | 'admin' | 'open' | 'operator'

/** The role of an account. */
export type Role = 'user' | 'moderator' | 'admin'
