-- The case: the n-th prime (the 1000th, 7919, unless the query says another), by trial division with
-- arbitrary-precision integers written in Lua. As in bc, every operation makes a new number and
-- leaves the old ones as garbage.
--
-- A POST is answered at once and then held open until its body has come, so that whoever measures can
-- look at the child while all that the request holds is still there.

-- --- natural numbers -----------------------------------------------------------------------------
-- A number is an array of digits to base 10^7, the lowest first, with no zero at the top; so 0 is
-- empty. Numbers are never changed once made. A product of digits, with carries, fits in 64 bits.

local BASE <const>, WIDTH <const> = 10000000, 7
local Natural = {}
Natural.__index = Natural

local function trimmed(digits)
    while digits[#digits] == 0 do digits[#digits] = nil end
    return setmetatable(digits, Natural)
end

-- From a decimal string, or a whole number that is not negative.
local function natural(value)
    local text, digits = tostring(value), {}
    for last = #text, 1, -WIDTH do
        digits[#digits + 1] = tonumber(text:sub(math.max(last - WIDTH + 1, 1), last))
    end
    return trimmed(digits)
end

function Natural.__tostring(a)
    local text = { tostring(a[#a] or 0) }
    for i = #a - 1, 1, -1 do text[#text + 1] = string.format("%07d", a[i]) end
    return table.concat(text)
end

local function compare(a, b)
    if #a ~= #b then return #a - #b end
    for i = #a, 1, -1 do
        if a[i] ~= b[i] then return a[i] - b[i] end
    end
    return 0
end

function Natural.__eq(a, b) return compare(a, b) == 0 end
function Natural.__lt(a, b) return compare(a, b) < 0 end
function Natural.__le(a, b) return compare(a, b) <= 0 end

function Natural.__add(a, b)
    local sum, carry = {}, 0
    for i = 1, math.max(#a, #b) do
        carry = carry + (a[i] or 0) + (b[i] or 0)
        sum[i] = carry % BASE
        carry = carry // BASE
    end
    if carry > 0 then sum[#sum + 1] = carry end
    return trimmed(sum)
end

-- Wants a >= b.
function Natural.__sub(a, b)
    local difference, borrow = {}, 0
    for i = 1, #a do
        local digit = a[i] - (b[i] or 0) - borrow
        borrow = digit < 0 and 1 or 0
        difference[i] = digit + borrow * BASE
    end
    return trimmed(difference)
end

function Natural.__mul(a, b)
    local product = {}
    for i = 1, #a + #b do product[i] = 0 end
    for i = 1, #a do
        local carry = 0
        for j = 1, #b do
            carry = carry + product[i + j - 1] + a[i] * b[j]
            product[i + j - 1] = carry % BASE
            carry = carry // BASE
        end
        product[i + #b] = carry
    end
    return trimmed(product)
end

-- Quotient and remainder by a divisor of one digit.
local function short_division(a, b)
    local quotient, rest = {}, 0
    for i = 1, #a do quotient[i] = 0 end
    for i = #a, 1, -1 do
        rest = rest * BASE + a[i]
        quotient[i] = rest // b[1]
        rest = rest % b[1]
    end
    return trimmed(quotient), trimmed({ rest })
end

-- a * BASE + digit.
local function shifted(a, digit)
    local result = { digit }
    for i = 1, #a do result[i + 1] = a[i] end
    return trimmed(result)
end

-- The digit q for which q * b <= a < (q + 1) * b, where a < BASE * b. The leading digits as floats
-- give q or a neighbour of it.
local function quotient_digit(a, b)
    local n = #b
    local a_top = ((a[n + 1] or 0) * (BASE + 0.0) + (a[n] or 0)) * BASE + (a[n - 1] or 0)
    local b_top = b[n] * (BASE + 0.0) + b[n - 1]
    local q = math.min(math.floor(a_top / b_top), BASE - 1)
    while natural(q) * b > a do q = q - 1 end
    while natural(q + 1) * b <= a do q = q + 1 end
    return q
end

local function long_division(a, b)
    local quotient, rest = {}, natural(0)
    for i = 1, #a do quotient[i] = 0 end
    for i = #a, 1, -1 do
        rest = shifted(rest, a[i])
        quotient[i] = quotient_digit(rest, b)
        rest = rest - natural(quotient[i]) * b
    end
    return trimmed(quotient), rest
end

local function divide(a, b)
    assert(#b > 0, "division by zero")
    return (#b == 1 and short_division or long_division)(a, b)
end

function Natural.__idiv(a, b) return (divide(a, b)) end
function Natural.__mod(a, b) return select(2, divide(a, b)) end

-- --- the case --------------------------------------------------------------------------------------

local ZERO <const>, ONE <const>, TWO <const> = natural(0), natural(1), natural(2)

-- Odd candidates only.
local function is_prime(candidate)
    local divisor = natural(3)
    while divisor * divisor <= candidate do
        if candidate % divisor == ZERO then return false end
        divisor = divisor + TWO
    end
    return true
end

local function nth_prime(n)
    local prime, count = TWO, 1
    local candidate = ONE
    while count < n do
        candidate = candidate + TWO
        if is_prime(candidate) then prime, count = candidate, count + 1 end
    end
    return prime
end

print(tostring(nth_prime(tonumber(r.args) or 1000)))
if r.method == "POST" then
    r:flush()
    r:requestbody()
end
