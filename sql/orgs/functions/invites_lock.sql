-- Locks the invites of an address and the organizations of the pending ones. Every change locks in this order: the invites
-- of an address, then organizations, then accounts. Callers that lock an account before they accept its invites call this
-- first.
create or replace function invites_lock(address text) returns void language plpgsql as $$
begin
  perform invite_address_lock(address);
  perform from organization o where o.id in (
    select i.organization_id from organization_invite i where i.email = address and i.status = 'pending')
  order by o.id for update;
end $$;
