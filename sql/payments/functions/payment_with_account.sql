-- Adds the account that owns a row to the public JSON of the row; null if there is none.
create or replace function payment_with_account(public_json json, account integer) returns json language sql immutable parallel safe
  return (left(public_json::text, -1) || ', "account_id" : ' || coalesce(account::text, 'null') || '}')::json;
